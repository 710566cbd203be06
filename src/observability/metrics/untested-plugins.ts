import type { StoredDescription } from '../../cache/events.ts'

const pluginVersion = /^[\w-]{1,64} \d[\w.+-]{0,31}$/

const maxPlugins = 10

/** The plugins that a description names as untested, each as a label with its version; other texts of an upstream are none. */
export const untestedPlugins = (description: StoredDescription): readonly string[] => {
  const { untested } = description.kind === 'complete' ? description : {}
  return untested === undefined
    ? []
    : [
        ...new Set(
          untested
            .split(', ')
            .slice(0, maxPlugins)
            .filter((plugin) => pluginVersion.test(plugin)),
        ),
      ]
}
