import { argv, exit, stderr, stdout } from 'node:process'
import { type ParseArgsConfig, parseArgs } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>

/**
 * To be called before a long command begins: prints its usage for `--help`, and exits with 2, and the usage, for an option that is
 * not among `options` and for a word more than `maxWords`.
 */
export const checkCommandLine = (usage: string, options: Options, maxWords = 0): void => {
  const refuse = (why: string): never => {
    stderr.write(`${why}\n\n${usage}\n`)
    exit(2)
  }
  try {
    const config = {
      args: argv.slice(2),
      options: { ...options, help: { type: 'boolean' } },
      strict: true,
    } as const
    const { values, positionals } = parseArgs({ ...config, allowPositionals: true })
    if (values['help'] === true) {
      stdout.write(`${usage}\n`)
      exit(0)
    }
    const unknown = positionals[maxWords]
    if (unknown !== undefined) refuse(`unknown argument: ${unknown}`)
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error))
  }
}
