"""Store webhooks as inbox events: routes, prompts of strangers' text, delivery."""
