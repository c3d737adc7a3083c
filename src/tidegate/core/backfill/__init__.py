"""Reading a range of a source once more, by hand, while live runs go on."""
