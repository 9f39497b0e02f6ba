"""Put a gateway together, run it and drain it: start reading here."""
