"""Model answers as they are written: message events, the streams made of them, and the messages they become."""
