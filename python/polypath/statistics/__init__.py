"""What several runs say together: tables of points, intervals, paired comparisons, and two engines side by side."""
