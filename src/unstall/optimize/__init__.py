"""Step 3, Optimize: try the changes that pay, prove that the results stay the same, hand over a patch."""
