/** Line icons on a grid of 24, drawn for this page. */
const PATHS = {
  chat: "M4 5.5A1.5 1.5 0 0 1 5.5 4h13A1.5 1.5 0 0 1 20 5.5v9a1.5 1.5 0 0 1-1.5 1.5H10l-4.5 4v-4A1.5 1.5 0 0 1 4 14.5z",
  overview: "M4 4h7v7H4zM13 4h7v4h-7zM13 11h7v9h-7zM4 14h7v6H4z",
  messages: "M4 6.5 12 13l8-6.5M4 6h16v12H4z",
  approvals: "M12 3.5 5 6v5.5c0 4.3 3 7.6 7 9 4-1.4 7-4.7 7-9V6zM9 12l2.2 2.2L15.2 10",
  people: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM3 20c0-3.3 2.7-5.5 6-5.5s6 2.2 6 5.5M16 4.5a3.3 3.3 0 0 1 0 6.2M17.5 14.8c2.1.7 3.5 2.5 3.5 5.2",
  jobs: "M12 21a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17zM12 8v4.8l3.2 2",
  board: "M4 4h4.6v16H4zM9.7 4h4.6v10H9.7zM15.4 4H20v13h-4.6z",
  sessions: "M5 5h14M5 10h14M5 15h9M5 20h6",
  platforms: "M7 8V4M17 8V4M5 8h14v3.5a7 7 0 0 1-14 0zM12 18.5V21",
  skills: "M14.5 6.5a4 4 0 0 0-5.3 4.9L4 16.6V20h3.4l5.2-5.2a4 4 0 0 0 4.9-5.3L14.8 12 12 9.2z",
  models: "M12 3v3M12 18v3M3 12h3M18 12h3M7 7h10v10H7zM10.5 10.5h3v3h-3z",
  logs: "M5 4h14v16H5zM8.5 8.5h7M8.5 12h7M8.5 15.5h4",
  settings: "M4 7h9M17 7h3M4 12h3M11 12h9M4 17h7M15 17h5M15 5v4M9 10v4M13 15v4",
  usage: "M4 20V4M4 20h16M8 20v-6M12 20V9M16 20v-9M20 20V6",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  menu: "M4 7h16M4 12h16M4 17h16",
  x: "M6 6l12 12M18 6 6 18",
  plus: "M12 5v14M5 12h14",
  send: "M5 12h13M12.5 6l6 6-6 6",
  stop: "M7 7h10v10H7z",
  retry: "M19.5 12a7.5 7.5 0 1 1-2.3-5.4M19.5 4v4.5H15",
  edit: "M5 19h3.2L18.6 8.6a2 2 0 0 0-2.9-2.9L5 16z",
  copy: "M9 9h10v11H9zM5 15V4h10",
  branch: "M7 4v16M7 14c0-4 10-2 10-8M17 6V4M7 4h.01M17 4h.01",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  search: "M11 17.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM16 16l4 4",
  image: "M4 5h16v14H4zM4 16l5-5 5 5 2-2 4 4M15.5 9.5h.01",
  check: "M5 12.5 10 17.5 19.5 7",
  chevron: "M9 5l7 7-7 7",
  down: "M5 9l7 7 7-7",
  download: "M12 4v11M7 11l5 5 5-5M5 20h14",
  play: "M8 5l11 7-11 7z",
  pause: "M8 5v14M16 5v14",
  warn: "M12 4 2.8 19.5h18.4zM12 10v4M12 16.8h.01",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M5.6 18.4l1.1-1.1M17.3 6.7l1.1-1.1",
  moon: "M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z",
  screen: "M4 5h16v11H4zM9 20h6M12 16v4",
  out: "M10 5H5v14h5M14 8l4 4-4 4M18 12H9",
  link: "M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.700-5.700l-1.300 1.300M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.700 5.700l1.300-1.300",
} as const;
export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The sign of the gateway, as in icon.svg. */
export function Mark({ size }: { size: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 64 64" aria-hidden="true" focusable="false">
      <rect width="64" height="64" rx="14" fill="#0f766e" />
      <g fill="none" stroke="#fff" stroke-width="4.5" stroke-linecap="round" stroke-linejoin="round">
        <path d="M22 16v32M42 16v32M22 32h20" />
        <path d="M22 22c-5 0-8-2-10-5M42 22c5 0 8-2 10-5" stroke="#99f6e4" stroke-width="3.5" />
      </g>
    </svg>
  );
}
