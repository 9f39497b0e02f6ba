"""Update Hermes: find a new version, test it on a copy, switch to it, switch back."""
