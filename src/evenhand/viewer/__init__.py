"""The local web app over run folders: reads only, on 127.0.0.1, without loading whole tables."""
