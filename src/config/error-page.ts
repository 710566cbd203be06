/** What an own error page may name, as `{{status}}`. */
export const placeholderNames = ['status', 'title', 'message', 'requestId', 'retryAfter'] as const

export type Placeholder = (typeof placeholderNames)[number]

export const placeholder = /\{\{[ ]?([^{}]{0,64}?)[ ]?\}\}/g

const maxPlaceholders = 100
const maxCharacters = 65_536

/** Why a text cannot be the page of errors. */
export const errorPageFault = (text: string): string | undefined => {
  if (text.length > maxCharacters) return 'the file is larger than 64 KiB'
  const names = [...text.matchAll(placeholder)].map(([, name = '']) => name)
  const allowedNames = placeholderNames.map((name) => `{{${name}}}`).join(', ')
  const unknown = names.find((name) => !placeholderNames.some((placeholderName) => placeholderName === name))
  if (unknown !== undefined) return `the file has {{${unknown}}}; write one of ${allowedNames}`
  return names.length > maxPlaceholders ? `the file has more than ${maxPlaceholders} placeholders` : undefined
}
