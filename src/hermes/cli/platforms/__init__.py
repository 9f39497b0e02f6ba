"""Commands of one platform: sign in, link, print a manifest."""
