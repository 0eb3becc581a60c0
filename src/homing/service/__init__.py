"""The service: a collection over HTTP, a page to use it with, and a client, which needs no server's libraries."""
