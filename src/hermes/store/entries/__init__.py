"""Jobs with the ledger of their due times; webhooks."""
