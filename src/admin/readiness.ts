/** May requests be sent here: `reasons` say why not, `degraded` what a client may notice although they may. */
export type Readiness = {
  readonly ready: boolean
  readonly reasons: readonly string[]
  readonly degraded: readonly { readonly reason: string; readonly service?: string }[]
}
