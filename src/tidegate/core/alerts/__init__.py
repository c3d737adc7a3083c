"""What is beyond its rules, told once and once more when it is over."""
