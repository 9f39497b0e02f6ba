"""Take a reply to its platform: rows, files, rate limits, previews, cards."""
