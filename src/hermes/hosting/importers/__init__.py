"""Import the data of other gateways."""
