import type { Config } from '../../config/config.ts'
import { checkAccess, isRevoked } from '../../exchange/access.ts'
import { whenKnown } from '../../http/message.ts'
import { createInFlight } from '../../server/overload.ts'
import { createPublicPort } from '../../server/public-port.ts'
import { Revocations } from '../../server/revocations.ts'
import { createUnreadResponses } from '../../server/unread-responses.ts'
import { createWebSockets } from '../../server/websockets.ts'
import type { CurrentSnapshot } from './current-snapshot.ts'
import type { Observation } from './observation.ts'
import type { Storage } from './storage.ts'

type PublicSideParts = Pick<Observation, 'logger' | 'metrics'> &
  Pick<Storage, 'buffered'> & { readonly config: Config; readonly current: CurrentSnapshot }

/** Those who may no longer read an event stream or a WebSocket that they have opened. */
const watchRevocations = (current: CurrentSnapshot): Revocations =>
  new Revocations(({ service: name, address, headers }, kind) => {
    const service = current.serviceNamed(name)
    if (service === undefined || (kind === 'websocket' && !service.websockets)) return false
    const { access } = service
    return (
      access === undefined || whenKnown(checkAccess(access, address, headers), (check) => !isRevoked(check))
    )
  })

/** Creates the public port, which does not listen yet, and what its connections share across configurations. */
export const createPublicSide = ({ config, current, logger, metrics, buffered }: PublicSideParts) => {
  const inFlight = createInFlight()
  const revocations = watchRevocations(current)
  const websockets = createWebSockets({
    limits: () => current.config.limits.websockets,
    revocations,
    report: metrics.observe.websockets,
  })
  const unread = createUnreadResponses({
    maxBytes: () => current.config.limits.bufferedBytes,
    forced: buffered.forced,
    report: metrics.observe.edge,
  })
  const port = createPublicPort(config, {
    inFlight,
    current: () => current.get(),
    report: (event) => {
      metrics.observe.edge(event)
      if (event.kind === 'pressure-changed')
        logger.warn({ pressure: event.level, signal: event.signal }, event.kind)
    },
    reportLifecycle: metrics.observe.lifecycle,
  })
  return { inFlight, revocations, websockets, unread, port }
}

export type PublicSide = ReturnType<typeof createPublicSide>

/** Open WebSockets of each service that has them; those of a removed service count until the last one has ended. */
export const openWebSockets = (current: CurrentSnapshot, { websockets }: PublicSide) => {
  const open = websockets.open()
  const configured = current.services.filter(({ service }) => service.websockets)
  const names = new Set([...configured.map(({ service }) => service.name), ...open.keys()])
  return [...names].map((service) => ({ service, open: open.get(service) ?? 0 }))
}
