"""What would help a connection: settings tried on a scenario, and ranked by what is asked for."""
