"""Whether a spec that is about to be deployed can go on from the checkpoint that is there."""
