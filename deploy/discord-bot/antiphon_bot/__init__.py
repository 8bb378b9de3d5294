"""A Discord bot that plays Antiphon sessions: each server is one session."""
