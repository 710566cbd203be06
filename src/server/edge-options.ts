import type { Logger } from 'pino'
import type { Config, LimitsConfig } from '../config/config.ts'
import type { GatewayError } from '../errors.ts'
import type { ConfigSnapshot } from '../exchange/config-snapshot.ts'
import type { Client, HandleRequest } from '../exchange/request-context.ts'
import type { Service } from '../exchange/service.ts'
import type { RequestHeaders } from '../http/headers/header-lines.ts'
import type { BufferedBytes } from './buffered-bytes.ts'
import type { HostCertificate } from './listener/certificates.ts'
import type { EdgeGuardOptions } from './listener/guard.ts'
import type { Revocations } from './revocations.ts'
import type { UnreadResponses } from './unread-responses.ts'
import type { WebSockets } from './websockets.ts'

/** A request that is refused before it reaches `handle`. */
export type RefusedEarly = {
  readonly id: string
  readonly service: Service | undefined
  readonly error: GatewayError
  readonly client: Client
  /** Undefined where the bytes are no request. */
  readonly request:
    | { readonly method: string; readonly target: string; readonly headers: RequestHeaders }
    | undefined
}

/** What the handlers of one configuration are created from. */
export type EdgeOptions = Pick<EdgeGuardOptions, 'poisoned' | 'report' | 'turnedAway'> & {
  refusedEarly(refusal: RefusedEarly): void
  readonly websockets: Pick<WebSockets, 'count'>
  readonly revocations: Pick<Revocations, 'watch'>
  /** Certificates for some hosts, beside the default one. */
  readonly certificates: readonly Pick<HostCertificate, 'hosts'>[]
  readonly snapshot: ConfigSnapshot
  /** HTML for `GET /`, in front of the services. */
  readonly frontPage?: string | undefined
  readonly limits: Pick<LimitsConfig, 'urlBytes' | 'keepAliveTimeoutMs' | 'websockets'>
  readonly trustedProxies: readonly string[]
  /** For requests of no service. */
  readonly cors: Config['cors'] | undefined
  readonly logger: Logger
  readonly handle: HandleRequest
  isDraining(): boolean
  /** Called for each response that is not flushed synchronously. */
  readonly inFlight: { enter(): void; leave(): void }
  readonly unread: UnreadResponses
  readonly buffered: Pick<BufferedBytes, 'budget'>
}
