"""Updates: look what is new, try the new code on a copy, take it up in one step, and find the way back."""
