"""What readers of label formats share."""
