const unicodeEscape = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** JSON as WordPress writes it: slashes escaped and nothing outside ASCII, so that text comparisons find no difference. */
export const wordpressJson = (value: unknown): string =>
  (JSON.stringify(value) ?? 'null').replaceAll('/', '\\/').replace(/[\u0080-\uffff]/g, unicodeEscape)
