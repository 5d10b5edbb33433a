"""Changes that may help a connection: settings tried on a scenario, and ranked by a goal."""
