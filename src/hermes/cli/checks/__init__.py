"""Find problems and name the command that fixes each: the checks of `hermes doctor`."""
