// Says above the page what of it cannot be shown.

export function complaining(target: HTMLElement | null): void {
  const complain = (reason: unknown) => {
    const line = document.createElement("p");
    line.className = "damage";
    line.role = "alert";
    line.textContent = `Part of this page cannot be shown: the file is damaged, or was edited (${String(reason)}).`;
    if (!document.querySelector(".damage")) target?.before(line);
  };
  addEventListener("unhandledrejection", (event) => complain(event.reason));
  addEventListener("error", (event) => event.error && complain(event.error));
}
