import type { ServiceConfig } from './config.ts'

const targetsOf = ({ upstream: { targets } }: ServiceConfig): readonly string[] =>
  targets === 'embedded' ? [] : targets

/** Paths of the interfaces of WordPress at the upstream of an open service. */
export const interfacesBehind = (
  service: ServiceConfig,
  services: readonly ServiceConfig[],
): readonly string[] =>
  service.contract !== 'open'
    ? []
    : services
        .filter(({ contract }) => contract === 'site')
        .filter((site) => targetsOf(site).some((target) => targetsOf(service).includes(target)))
        .map(({ upstream }) => upstream.basePath.replace(/\/$/, ''))
