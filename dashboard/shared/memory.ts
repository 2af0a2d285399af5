// What the page remembers about its reader: the light, the zone. A browser that keeps nothing is fine.

export function remembered(name: string): string | null {
  try {
    return localStorage.getItem(`holdfast.${name}`);
  } catch {
    return null;
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`holdfast.${name}`, value);
  } catch {
    // Nothing is lost but the choice.
  }
}
