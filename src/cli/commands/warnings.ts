import type { Config } from '../../config/config.ts'
import { configWarnings } from '../../config/warnings.ts'

type SomeServices = {
  readonly services?: Readonly<Record<string, { readonly upstream?: { readonly targets?: unknown } }>>
}

/** A configuration, and its tree with the environment filled in. */
type Checked = { readonly config: Config; readonly filled: unknown }

/** A service without targets, as in an empty file, has a demo upstream, which its author may not expect. */
export const warningsOf = ({ config, filled }: Checked): ReturnType<typeof configWarnings> => [
  ...configWarnings(config),
  ...config.services
    .filter(({ name, upstream }) => {
      const given = (filled as SomeServices | null)?.services?.[name]?.upstream?.targets
      return upstream.targets === 'embedded' && given === undefined
    })
    .map(({ name }) => ({
      path: `services.${name}.upstream.targets`,
      message:
        'is not set, so that the embedded demo upstream is used, whose passwords are public; name your own servers',
    })),
]
