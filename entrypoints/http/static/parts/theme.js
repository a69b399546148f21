// Dark or light: as the system says, until somebody chooses.

const NAME = "herdbook.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/** @returns {"dark" | "light"} */
export function themeName() {
  const chosen = localStorage.getItem(NAME);
  if (chosen === "dark" || chosen === "light") return chosen;
  return system.matches ? "dark" : "light";
}

/** @param {"dark" | "light"} name */
export function setTheme(name) {
  const isSystem = name === (system.matches ? "dark" : "light");
  if (isSystem) localStorage.removeItem(NAME);
  else localStorage.setItem(NAME, name);
  if (isSystem) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
}
