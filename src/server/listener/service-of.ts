import type { Service } from '../../pipeline/service.ts'

/** The service with the longest mount that is a prefix of the target. Decides the format of early errors. */
export const serviceOf = (services: readonly Service[], target: string): Service | undefined => {
  const path = target.split('?', 1)[0] ?? ''
  let found: Service | undefined
  for (const service of services) {
    const fits = path === service.mount || path.startsWith(`${service.mount}/`)
    if (fits && service.mount.length >= (found?.mount.length ?? 0)) found = service
  }
  return found
}
