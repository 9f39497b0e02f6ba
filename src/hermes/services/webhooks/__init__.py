"""Store webhooks as inbox events: routes, prompts from untrusted text, delivery."""
