import { argv, exit, stderr, stdout } from 'node:process'
import { type ParseArgsConfig, parseArgs } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>

type CommandLine =
  | { readonly kind: 'run' }
  | { readonly kind: 'help' }
  | { readonly kind: 'refused'; readonly why: string }

/** What a word has to look like. */
export const words = { any: /./, count: /^[1-9]\d*$/ } as const

/** `allowed`: what each word has to look like; a word more than these is refused. */
export const readCommandLine = (
  args: readonly string[],
  options: Options,
  allowed: readonly RegExp[],
): CommandLine => {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { ...options, help: { type: 'boolean' } },
      strict: true,
      allowPositionals: true,
    })
    if (values['help'] === true) return { kind: 'help' }
    const unknown = positionals.find((word, at) => allowed[at]?.test(word) !== true)
    return unknown === undefined ? { kind: 'run' } : { kind: 'refused', why: `unknown argument: ${unknown}` }
  } catch (error) {
    return { kind: 'refused', why: error instanceof Error ? error.message : String(error) }
  }
}

/** To be called before a long command begins: prints its usage for `--help`, and exits with 2, and the usage, for what it does not take. */
export const checkCommandLine = (
  usage: string,
  options: Options = {},
  allowed: readonly RegExp[] = [],
  args: readonly string[] = argv.slice(2),
): void => {
  const read = readCommandLine(args, options, allowed)
  if (read.kind === 'run') return
  if (read.kind === 'help') stdout.write(`${usage}\n`)
  else stderr.write(`${read.why}\n\n${usage}\n`)
  exit(read.kind === 'help' ? 0 : 2)
}
