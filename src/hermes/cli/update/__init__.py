"""Commands about versions: update, roll back, show."""
