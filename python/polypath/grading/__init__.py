"""Grading what a class hands in: a rubric, submissions that run in processes of their own, points and feedback."""

from polypath.grading.judge import Grade, Mark, judged, wanted
from polypath.grading.process import Outcome, run
from polypath.grading.rubric import Rubric, load
from polypath.grading.submission import Submission, found

__all__ = ["Grade", "Mark", "Outcome", "Rubric", "Submission", "found", "judged", "load", "run", "wanted"]
