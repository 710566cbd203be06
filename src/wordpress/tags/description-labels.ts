import type { StoredDescription } from '../../cache/events.ts'

const name = String.raw`[\w./:-]{1,64}`

/** What the companion says, with the names that WordPress and plugins give; no other text of an upstream is a label. */
const causes = [
  'a WordPress before 6\\.1',
  'a query without the cache',
  'all options',
  'an option in letters of another alphabet',
  'a request to another server',
  'a plugin that runs before the companion',
  'a statement before the companion was loaded',
  `the group ${name} of the object cache`,
  `a filter of ${name}`,
  'a query of its own',
  'a query without a statement',
  'a query that cannot be read',
  `the option ${name} of the network`,
  'a statement that cannot be read',
  'the table blogs',
  'the temporary value(?: (?:_site)?_transient_[A-Za-z]{1,20}[_-]\\*)?',
  'an object cache that cannot be read',
  'more than \\d{1,9} sites of the network',
  'more than \\d{1,9} bytes of tags',
]
const known = new RegExp(`^(?:plugin ${name}: )?(?:${causes.join('|')})$`)

/** What stands before the first separator in the name of a temporary value is the prefix of its plugin; the rest may come from a client. */
const temporaryValue = /(the temporary value) (?:((?:_site)?_transient_[A-Za-z]{1,20}[_-]).*|.*)/

/** What keeps a description from being complete. */
const causeLabel = (cause: string): string => {
  if (cause === '') return 'the companion does not say why'
  const text = cause.replace(temporaryValue, (_, words: string, prefix?: string) =>
    prefix === undefined ? words : `${words} ${prefix}*`,
  )
  return known.test(text) ? text : 'another cause'
}

const pluginVersion = /^[\w-]{1,64} \d[\w.+-]{0,31}$/
const maxPlugins = 10

/** The plugins, each with its version, that the companion was not tested with. */
const untestedPlugins = (list: string): readonly string[] => [
  ...new Set(
    list
      .split(', ')
      .slice(0, maxPlugins)
      .filter((plugin) => pluginVersion.test(plugin)),
  ),
]

/** Labels for what the companion says of a stored response. `cause` is empty where the description is complete. */
export const descriptionLabels = (
  description: StoredDescription,
): { readonly cause: string; readonly untested: readonly string[] } =>
  description.kind === 'complete'
    ? { cause: '', untested: untestedPlugins(description.untested ?? '') }
    : { cause: causeLabel(description.cause ?? ''), untested: [] }
