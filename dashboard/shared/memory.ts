// Remembers the reader's theme and zone. A browser without storage works too.

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
    // Only the choice is lost.
  }
}
