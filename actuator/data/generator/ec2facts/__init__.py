"""Makes the facts that longshore-ec2-data embeds out of published packages; see generate.sh."""
