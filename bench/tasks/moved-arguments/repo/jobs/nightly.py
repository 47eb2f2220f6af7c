"""What is done every night."""

from notify.mail import send as send_mail

ADMIN = "admin@example.org"


def report(failures):
    """Tell the administrator what has failed, if anything has."""
    if failures:
        lines = "\n".join(f"- {failure}" for failure in failures)
        send_mail(ADMIN, f"{len(failures)} jobs failed", lines, urgent=len(failures) > 2)


def remind(users):
    for user in users:
        send_mail(user["mail"], "Reminder", "You have not logged in for a while.")
