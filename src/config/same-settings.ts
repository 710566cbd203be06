import { Secret } from './secret.ts'

/** `this` holds the value as it was before a secret hid itself. */
function revealed(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  const original = this[key]
  return original instanceof Secret ? original.reveal() : value
}

/** Do two settings mean the same, secrets included? Nothing of them is kept. */
export const sameSettings = (a: unknown, b: unknown): boolean =>
  JSON.stringify(a, revealed) === JSON.stringify(b, revealed)
