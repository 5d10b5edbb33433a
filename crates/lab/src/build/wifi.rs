//! Links over the air.

use polypath_net::{Phy, Standard, State, WIFI_STANDARDS, WifiConfig};

use crate::plan::{Medium, Wifi};

/// What the network makes of it.
///
/// # Errors
/// A standard or a medium that there is not.
pub(super) fn config(wifi: &Wifi, media: &[Medium]) -> Result<WifiConfig, String> {
    let Some(standard) = Standard::by_name(&wifi.standard) else {
        let names: Vec<&str> = WIFI_STANDARDS.iter().map(|it| it.name).collect();
        let known = names.join(", ");
        return Err(format!(
            "there is no Wi-Fi standard \"{}\"; there is {known}",
            wifi.standard
        ));
    };
    let medium = match wifi.medium {
        Some(index) if index >= media.len() => return Err(format!("there is no medium {index}")),
        medium => medium.map(|index| index as u32),
    };
    let states = wifi.states.iter().map(|state| State {
        mcs: state.mcs,
        error: state.error,
        dwell: state.dwell_ns,
        next: state.next.clone(),
    });
    Ok(WifiConfig {
        standard,
        phy: Phy {
            width: wifi.width_mhz,
            streams: wifi.streams,
            short_guard: wifi.short_guard,
        },
        medium,
        states: states.collect(),
        most_packets: wifi.packets,
        most_bytes: wifi.aggregate_bytes,
        most_airtime: wifi.airtime_ns,
        attempts: wifi.attempts,
    })
}
