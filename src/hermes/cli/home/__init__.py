"""Commands over a whole home: back up, copy the store, import, profiles."""
