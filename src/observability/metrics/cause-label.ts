import type { StoredDescription } from '../../cache/events.ts'

const maxLabelLength = 120

/** What stands before the first separator in the name of a temporary value is the prefix of its plugin; the rest may come from a client. */
const temporaryValue = /(the temporary value) (?:((?:_site)?_transient_[A-Za-z]{1,20}[_-]).*|.*)/

/** A label for what keeps the description of a stored response from being complete; empty for a complete one. */
export const causeLabel = (description: StoredDescription): string => {
  if (description.kind === 'complete') return ''
  const { cause = '' } = description
  const text = cause
    .replaceAll(/[^\x20-\x7e]/g, '_')
    .replace(temporaryValue, (_, words: string, prefix?: string) =>
      prefix === undefined ? words : `${words} ${prefix}*`,
    )
  return text === '' ? 'the companion does not say why' : text.slice(0, maxLabelLength)
}
