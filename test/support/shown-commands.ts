import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** A command that a page shows, and what it says that the command prints. */
export type ShownCommand = { readonly command: string; readonly output: string }

/** The blocks of code of one language, in the order of the page. */
export const blocksOf = (page: string, language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, text = '']) => text,
  )

/** The commands of all console blocks, in the order of the page. */
export const shownCommands = (page: string): ShownCommand[] =>
  blocksOf(page, 'console').flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((step) => ({
        command: step.slice(0, step.indexOf('\n')),
        output: step.slice(step.indexOf('\n') + 1),
      })),
  )

/** Runs a command as a reader does; what it prints counts, since grep fails where it finds nothing. */
export const printedBy = async (
  command: string,
  options: { readonly cwd?: string; readonly env?: Record<string, string> } = {},
): Promise<string> => {
  const env = { ...process.env, ...options.env }
  const { stdout } = await promisify(execFile)('bash', ['-c', `${command}; true`], { ...options, env })
  return stdout
}

/** Without what may differ from one run to the next: a second between a response and its arrival, the width of tables, the last line feed. */
export const comparable = (text: string): string =>
  text
    .replaceAll('\r', '')
    .replaceAll(/ttl=\d+/g, 'ttl=N')
    .replaceAll(/ {2,}/g, '  ')
    .trimEnd()
