# Trellis in a container: docker build -t trellis . && docker run --rm --read-only -p 8080:8080 trellis start --demo

FROM node:26-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The package's own `prepare` would build before the sources are here.
RUN npm ci --ignore-scripts
COPY tsconfig.json build.mjs ./
COPY src ./src
COPY demo ./demo
RUN npm run build

FROM node:26-slim
ENV NODE_ENV=production
# Reachable from outside the container; which ports are published is decided where it is started.
ENV TRELLIS_HOST=0.0.0.0
ENV TRELLIS_ADMIN_HOST=0.0.0.0
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/dist ./dist
COPY config ./config
COPY contracts ./contracts
COPY public ./public
USER node
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.TRELLIS_ADMIN_PORT || 9090}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# Exec form: node is the process that gets SIGTERM, and it drains on it.
ENTRYPOINT ["node", "--no-allocation-site-pretenuring", "dist/main.js"]
CMD ["start"]
