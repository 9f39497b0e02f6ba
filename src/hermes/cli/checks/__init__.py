"""Look for trouble and say what to type: the checks behind `hermes doctor`."""
