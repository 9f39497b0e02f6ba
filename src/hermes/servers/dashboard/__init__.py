"""The dashboard: sign-in, cookies and the files of the page. Imported by the first request for it."""
