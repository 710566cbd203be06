import type { Config } from '../config/config.ts'
import { namedList, refusedText } from '../wordpress/index/discovery.ts'
import { type Asked, withAskedServices } from './upstream-findings.ts'

/** What a site announces otherwise than the contract, and the routes of which no row could be made, in words. */
const notesOf = ({ built: { config, discovery } }: Asked): readonly { service: string; text: string }[] => {
  const changed = (discovery?.drift() ?? []).filter(
    ({ kind, matters }) => matters && (kind === 'argument-changed' || kind === 'argument-added'),
  )
  const names = new Set(changed.map(({ route, method, argument }) => `${argument} of ${method} ${route}`))
  const refused = discovery === undefined ? undefined : refusedText(discovery.learned())
  const texts = [
    ...(names.size === 0
      ? []
      : [
          `announces other values than WordPress itself; Trellis sends as they come: ${namedList([...names])}`,
        ]),
    ...(refused === undefined ? [] : [refused]),
  ]
  return texts.map((text) => ({ service: config.name, text }))
}

/** What is worth knowing about the sites, and no fault. Fetches the index of each once. */
export const upstreamNotes = (config: Config) =>
  withAskedServices(
    config.services.filter(({ contract }) => contract === 'site'),
    config,
    (asked) => asked.flatMap(notesOf),
  )
