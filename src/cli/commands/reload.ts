import type { ExitReason } from '../cli-ports.ts'
import { colored } from '../colors.ts'
import { jsonText, printable } from '../texts.ts'
import { type AdminCommand, ask } from './admin-commands.ts'

type Reloaded = {
  readonly outcome: 'applied' | 'unchanged'
  readonly hash: string
  readonly changed?: readonly string[]
}

/** Why a file is not in force; `detail` has a line for each fault or key. */
type Refused = { readonly code: 'invalid' | 'restart-needed' | 'failed'; readonly detail: string }

const isRefused = (content: unknown): content is Refused => {
  const { code } = (content ?? {}) as { readonly code?: unknown }
  return code === 'invalid' || code === 'restart-needed' || code === 'failed'
}

const refusals = {
  invalid: 'the file has faults',
  'restart-needed': 'these settings need a restart of the gateway',
  failed: 'the gateway met an unexpected error',
} as const satisfies Record<Refused['code'], string>

const maxShown = 12

const reloadedText = ({ outcome, hash, changed = [] }: Reloaded): string => {
  if (outcome === 'unchanged')
    return `Nothing has changed: the gateway runs with this configuration already, hash ${hash}.\n`
  const more = changed.length - maxShown
  const names = changed.slice(0, maxShown).join(', ')
  const keys = changed.length === 0 ? '' : `: ${names}${more > 0 ? ` and ${more} more` : ''}`
  return `The new configuration is in force, hash ${hash}. Changed${keys}.\n`
}

/** Asks a running gateway to read its configuration again; ends when the new configuration is in force everywhere, or was refused. */
export const reload = async (command: AdminCommand): Promise<ExitReason> => {
  const { address, json, stdout, stderr } = command
  const response = await ask(address, '/reload', {})
  if (response.kind === 'answered') {
    const reloaded = response.content as Reloaded
    stdout.write(json ? jsonText(reloaded) : printable(reloadedText(reloaded)))
    return 'ok'
  }
  const { content, message } = response
  if (!isRefused(content)) {
    stderr.write(printable(`trellis: ${message}\n`))
    return 'adminFailed'
  }
  const { code, detail } = content
  const lines = detail.split('\n')
  if (json) stdout.write(jsonText({ outcome: code, [code === 'restart-needed' ? 'keys' : 'faults']: lines }))
  else {
    const what = `trellis: not reloaded, ${refusals[code]}; the earlier configuration stays in force:`
    stderr.write(
      `${colored(stderr, 'fault', what)}\n${printable(lines.map((line) => `  ${line}\n`).join(''))}`,
    )
  }
  return 'notReloaded'
}
