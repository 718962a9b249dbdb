"""What a player shows, as data: rows, cells and sentences. Without Textual."""
