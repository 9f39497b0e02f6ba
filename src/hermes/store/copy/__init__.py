"""Copy a whole store from one database into another."""
